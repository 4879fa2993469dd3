// net/http over TLS, with the certificate and the key that the arguments name. A third argument is how often connections are ended
// gracefully, such as 200ms. Prints its port, and ends with its standard input.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// What a server listens on that is shut down while another goes on with the same port.
type turn struct {
	net.Listener
	accepted chan net.Conn
	over     chan struct{}
	once     sync.Once
}

func (t *turn) Accept() (net.Conn, error) {
	select {
	case connection := <-t.accepted:
		return connection, nil
	case <-t.over:
		return nil, net.ErrClosed
	}
}

func (t *turn) Close() error {
	t.once.Do(func() { close(t.over) })
	return nil
}

// Serves by one server after the other, each of which is shut down after the interval: its connections get a GOAWAY.
func serveInTurns(listener net.Listener, interval time.Duration) {
	accepted := make(chan net.Conn)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				log.Fatal(err)
			}
			accepted <- connection
		}
	}()
	for {
		server := &http.Server{}
		go server.ServeTLS(&turn{Listener: listener, accepted: accepted, over: make(chan struct{})}, os.Args[1], os.Args[2])
		time.Sleep(interval)
		go server.Shutdown(context.Background())
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	var served int64
	count := func(handler http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor == 2 {
				atomic.AddInt64(&served, 1)
			}
			handler(w, r)
		}
	}
	http.HandleFunc("/", count(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	http.HandleFunc("/length", count(func(w http.ResponseWriter, r *http.Request) {
		length, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, length)
	}))
	http.HandleFunc("/events", count(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/event-stream")
		for i := 0; i < 3; i++ {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}))
	http.HandleFunc("/abort", count(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	http.HandleFunc("/served", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, atomic.LoadInt64(&served)) })
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	if len(os.Args) > 3 {
		interval, err := time.ParseDuration(os.Args[3])
		if err != nil {
			log.Fatal(err)
		}
		serveInTurns(listener, interval)
	}
	log.Fatal(http.ServeTLS(listener, nil, os.Args[1], os.Args[2]))
}
