// Package redislist reads a list of proxies that another program keeps in
// Redis, so that it can be taken over. It only reads, piece by piece.
package redislist

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/redis/rueidis"
)

// piece is how many elements or bytes are asked for at once.
const (
	piece      = 1000
	pieceBytes = 256 << 10
)

// Source is a key that holds proxies.
type Source struct {
	client rueidis.Client
	key    string
	kind   string // its type in Redis
}

// Open finds out what a key holds: a list, set, sorted set, hash or string.
// password is used when the URL has none. No error quotes the URL.
func Open(ctx context.Context, url, password, key string) (*Source, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, errors.New("the URL of Redis must look like redis://user:password@host:6379/0, or rediss:// with TLS")
	}
	option.DisableCache = true
	if option.Password == "" {
		option.Password = password
	}
	if option.TLSConfig != nil {
		option.TLSConfig.MinVersion = tls.VersionTLS12
	}
	client, err := connect(option)
	if err != nil {
		return nil, fmt.Errorf("redis at %s: %w", strings.Join(option.InitAddress, ", "), err)
	}
	s := &Source{client: client, key: key}
	if s.kind, err = client.Do(ctx, client.B().Type().Key(key).Build()).ToString(); err != nil {
		client.Close()
		return nil, s.wrong(err)
	}
	switch s.kind {
	case "list", "set", "zset", "hash", "string":
		return s, nil
	case "none":
		err = fmt.Errorf("the key %q holds nothing in this database", key)
	default:
		err = fmt.Errorf("the key %q is a %s: proxies are taken from a list, set, zset, hash or string", key, s.kind)
	}
	client.Close()
	return nil, err
}

// connect falls back to a single node where the user may not ask for a cluster.
func connect(option rueidis.ClientOption) (rueidis.Client, error) {
	client, err := rueidis.NewClient(option)
	if _, answered := rueidis.IsRedisErr(err); answered {
		option.ForceSingleClient = true
		return rueidis.NewClient(option)
	}
	return client, err
}

// Kind is the key's type in Redis.
func (s *Source) Kind() string { return s.kind }

// Format is the form in which Copy writes: a string is a list as it is; the
// elements of all else become JSON lines.
func (s *Source) Format() string {
	if s.kind == "string" {
		return "auto"
	}
	return "jsonl"
}

// Close ends the connection.
func (s *Source) Close() { s.client.Close() }

// Copy writes the proxies out, in the order that Redis gives them. What comes or
// goes meanwhile may be there or not, and may come twice.
func (s *Source) Copy(ctx context.Context, to io.Writer) error {
	var err error
	switch s.kind {
	case "list":
		err = s.copyList(ctx, to)
	case "string":
		err = s.copyString(ctx, to)
	default:
		err = s.scan(ctx, to)
	}
	return s.wrong(err)
}

// wrong says where an error comes from.
func (s *Source) wrong(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %q from Redis: %w", s.key, err)
}

func (s *Source) copyList(ctx context.Context, to io.Writer) error {
	for from := int64(0); ; from += piece {
		list, err := s.client.Do(ctx, s.client.B().Lrange().Key(s.key).Start(from).Stop(from+piece-1).Build()).AsStrSlice()
		if err != nil || len(list) == 0 {
			return err
		}
		if err := write(to, list, element); err != nil {
			return err
		}
	}
}

func (s *Source) copyString(ctx context.Context, to io.Writer) error {
	for from := int64(0); ; from += pieceBytes {
		text, err := s.client.Do(ctx, s.client.B().Getrange().Key(s.key).Start(from).End(from+pieceBytes-1).Build()).ToString()
		if err != nil || text == "" {
			return err
		}
		if _, err := io.WriteString(to, text); err != nil {
			return err
		}
	}
}

// scan reads what has no order. A sorted set gives its scores too, and a hash
// its values.
func (s *Source) scan(ctx context.Context, to io.Writer) error {
	for cursor := uint64(0); ; {
		entry, err := s.client.Do(ctx, s.scanCommand(cursor)).AsScanEntry()
		if err != nil {
			return err
		}
		switch s.kind {
		case "set":
			err = write(to, entry.Elements, element)
		case "zset":
			err = write(to, evenOf(entry.Elements), element)
		default:
			err = writePairs(to, entry.Elements)
		}
		if cursor = entry.Cursor; err != nil || cursor == 0 {
			return err
		}
	}
}

func (s *Source) scanCommand(cursor uint64) rueidis.Completed {
	switch b := s.client.B(); s.kind {
	case "set":
		return b.Sscan().Key(s.key).Cursor(cursor).Count(piece).Build()
	case "zset":
		return b.Zscan().Key(s.key).Cursor(cursor).Count(piece).Build()
	default:
		return b.Hscan().Key(s.key).Cursor(cursor).Count(piece).Build()
	}
}

// evenOf gives the members of member and score in turn.
func evenOf(list []string) []string {
	members := make([]string, 0, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		members = append(members, list[i])
	}
	return members
}
