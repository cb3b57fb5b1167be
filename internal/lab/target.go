package lab

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Target is one site of the lab.
type Target struct {
	Name string
	Kind TargetKind
	Addr string
	URL  string // base URL

	lab      *Lab
	spec     TargetSpec
	Requests atomic.Int64
	OK       atomic.Int64
	S429     atomic.Int64

	mu      sync.Mutex
	buckets map[string]*bucket
	bodies  map[string]int // how often each path was answered well
}

// bucket is a token bucket of one address.
type bucket struct {
	tokens float64
	at     time.Time
}

func (l *Lab) startTarget(ctx context.Context, spec TargetSpec) error {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t := &Target{
		Name: spec.Name, Kind: spec.Kind, Addr: ln.Addr().String(), lab: l, spec: spec,
		buckets: map[string]*bucket{}, bodies: map[string]int{},
	}
	t.URL = "http://" + t.Addr
	if spec.Kind == OutageTarget {
		ln = &outageListener{Listener: ln, target: t}
	}
	if spec.Kind == TLSTarget {
		t.URL = "https://" + t.Addr
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{l.cert}, MinVersion: tls.VersionTLS12})
	}
	server := &http.Server{Handler: t, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	l.targets = append(l.targets, t)
	l.servers = append(l.servers, server)
	l.wg.Go(func() { _ = server.Serve(ln) })
	return nil
}

// down says whether the target is in its outage.
func (t *Target) down() bool {
	at := t.lab.since()
	return t.Kind == OutageTarget && at >= t.spec.DownFrom && at < t.spec.DownFrom+t.spec.DownFor
}

// outageListener resets connections during the outage.
type outageListener struct {
	net.Listener
	target *Target
}

// Accept gives the next connection that the target would take.
func (l *outageListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || !l.target.down() {
			return c, err
		}
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}

// ServeHTTP answers as the kind is made to.
func (t *Target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t.Requests.Add(1)
	if t.down() {
		panic(http.ErrAbortHandler) // a connection from before the outage
	}
	if t.spec.Latency > 0 {
		time.Sleep(t.spec.Latency)
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	if t.Kind == LimitedTarget && !t.allow(host) {
		t.S429.Add(1)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	t.OK.Add(1)
	t.mu.Lock()
	t.bodies[r.URL.Path]++
	t.mu.Unlock()
	_, _ = fmt.Fprintf(w, "<html><title>%s</title><p>%s</p>%s</html>\n", t.Name, r.URL.Path, strings.Repeat("<p>lab</p>", 20))
}

// allow takes a token of an address.
func (t *Target) allow(host string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.lab.now()
	b := t.buckets[host]
	if b == nil {
		b = &bucket{float64(t.spec.Burst), now}
		t.buckets[host] = b
	}
	b.tokens = min(float64(t.spec.Burst), b.tokens+t.spec.Rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// Delivered says how often a path was answered well.
func (t *Target) Delivered(path string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bodies[path]
}

// makeCertificate signs a certificate for 127.0.0.1 by itself.
func makeCertificate(now time.Time) (tls.Certificate, *x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hostler lab"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool, nil
}

func certPEM(c tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
}
