package keeper

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"

	"github.com/hostler-proxy/hostler/internal/pool"
	"github.com/hostler-proxy/hostler/internal/proxy"
)

// token is what a lease id says: enough to find the proxy and the target of a
// lease whose record is long gone. It is signed with the store's key, so that
// nobody can make one up.
type token struct {
	Pool    string
	Key     pool.Key
	Proxy   proxy.ID
	Target  string
	Granted pool.Time
	Fence   int64
}

// ErrUnknownLease says that the id was not made by this store.
var ErrUnknownLease = errors.New("this is not a lease id of this store")

const macSize = 16

// encode gives the lease id. It begins with the random half of the key, so that
// its first eight characters, which views show, tell leases apart.
func (t token) encode(key []byte) string {
	b := make([]byte, 0, 96+len(t.Pool)+len(t.Target))
	b = binary.BigEndian.AppendUint64(b, t.Key[1])
	b = binary.BigEndian.AppendUint64(b, t.Key[0])
	b = append(b, t.Proxy[:]...)
	b = binary.AppendVarint(b, int64(t.Granted))
	b = binary.AppendVarint(b, t.Fence)
	b = appendText(b, t.Pool)
	b = appendText(b, t.Target)
	return base64.RawURLEncoding.EncodeToString(append(b, sign(key, b)...))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func sign(key, b []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(b)
	return mac.Sum(nil)[:macSize]
}

// maxToken bounds a lease id: pool and target names are bounded too.
const maxToken = 1024

// decode reads a lease id and checks its signature.
func decode(id string, key []byte) (t token, err error) {
	if len(id) > maxToken {
		return t, ErrUnknownLease
	}
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(raw) < 32+macSize {
		return t, ErrUnknownLease
	}
	body, mac := raw[:len(raw)-macSize], raw[len(raw)-macSize:]
	if !hmac.Equal(mac, sign(key, body)) {
		return t, ErrUnknownLease
	}
	t.Key = pool.Key{binary.BigEndian.Uint64(body[8:]), binary.BigEndian.Uint64(body)}
	copy(t.Proxy[:], body[16:32])
	rest := body[32:]
	granted, rest := takeVarint(rest)
	t.Granted = pool.Time(granted)
	t.Fence, rest = takeVarint(rest)
	t.Pool, rest = takeText(rest)
	t.Target, _ = takeText(rest)
	return t, nil
}

func takeVarint(b []byte) (int64, []byte) {
	v, n := binary.Varint(b)
	return v, b[max(n, 0):]
}

func takeText(b []byte) (string, []byte) {
	n, k := binary.Uvarint(b)
	b = b[max(k, 0):]
	n = min(n, uint64(len(b)))
	return string(b[:n]), b[n:]
}
