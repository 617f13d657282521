// A web server, whose listener speaks MPTCP as Go's do since 1.24, and a client that asks for it.
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
)

const length = 15 << 20

func stream() io.Reader {
	return io.LimitReader(rand.New(rand.NewSource(7)), length)
}

func get(url string) error {
	dialer := &net.Dialer{}
	dialer.SetMultipathTCP(true)
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, address)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial}}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	got, want := sha256.New(), sha256.New()
	io.Copy(want, stream())
	if _, err := io.Copy(got, response.Body); err != nil {
		return err
	}
	if string(got.Sum(nil)) != string(want.Sum(nil)) {
		return fmt.Errorf("the download is not what was served")
	}
	return nil
}

func main() {
	var err error
	if os.Args[1] == "serve" {
		err = http.ListenAndServe(os.Args[2], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.Copy(w, stream())
		}))
	} else {
		err = get(os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
