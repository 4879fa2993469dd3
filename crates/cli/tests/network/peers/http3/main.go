// quic-go's HTTP/3, with the certificate and the key that the arguments name. With a third argument it sends a Retry to every new
// connection. Prints its port, and ends with its standard input.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func main() {
	certificate, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
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
			atomic.AddInt64(&served, 1)
			handler(w, r)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", count(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	mux.HandleFunc("/length", count(func(w http.ResponseWriter, r *http.Request) {
		length, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, length)
	}))
	mux.HandleFunc("/events", count(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/event-stream")
		for i := 0; i < 3; i++ {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}))
	mux.HandleFunc("/late", count(func(w http.ResponseWriter, r *http.Request) {
		if !r.TLS.HandshakeComplete {
			w.WriteHeader(http.StatusTooEarly)
		}
	}))
	mux.HandleFunc("/abort", count(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	mux.HandleFunc("/served", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, atomic.LoadInt64(&served)) })
	transport := &quic.Transport{Conn: socket, VerifySourceAddress: func(net.Addr) bool { return len(os.Args) > 3 }}
	settings := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{certificate}})
	listener, err := transport.ListenEarly(settings, &quic.Config{MaxIncomingStreams: 20, Allow0RTT: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(socket.LocalAddr().(*net.UDPAddr).Port)
	log.Fatal((&http3.Server{Handler: mux}).ServeListener(listener))
}
