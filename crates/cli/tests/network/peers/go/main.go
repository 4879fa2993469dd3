// net/http over TLS, with the certificate and the key that the arguments name. Prints its port, and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

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
	log.Fatal(http.ServeTLS(listener, nil, os.Args[1], os.Args[2]))
}
