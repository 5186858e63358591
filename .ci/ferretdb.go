// Command ferretdb serves MongoDB's wire protocol on SQLite: ferretdb ADDRESS DIRECTORY.
//
// FerretDB's own command panics at its start when it is built from the module proxy, which lacks the file with its
// version; its embeddable package does not need that file.
//
// FerretDB reads a document and writes it in two steps, so one of two updates at once may be lost. MongoDB changes a
// document atomically. Connections are therefore accepted here, and one command that changes documents runs at a time.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("Expected: ferretdb ADDRESS DIRECTORY")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "ferretdb-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "socket")
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{Unix: socket},
		Handler:   "sqlite",
		SQLiteURL: "file:" + os.Args[2] + "/",
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(client, socket)
		}
	}()
	if err := server.Run(ctx); err != nil {
		log.Print(err)
	}
	listener.Close()
}

// Held from a command that changes documents to its reply.
var changing sync.Mutex

// forward passes the messages between a client and the server until both have ended.
func forward(client net.Conn, socket string) {
	defer client.Close()
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	var mutex sync.Mutex
	var awaited uint32 // the id of the command whose reply ends the change
	isChanging := false
	release := func(isReply func(uint32) bool) {
		mutex.Lock()
		defer mutex.Unlock()
		if isChanging && isReply(awaited) {
			isChanging = false
			changing.Unlock()
		}
	}
	go func() {
		defer server.(*net.UnixConn).CloseWrite() // the server completes what it has begun
		for {
			message, err := read(client)
			if err != nil {
				return
			}
			if changes(message) {
				changing.Lock()
				mutex.Lock()
				awaited, isChanging = binary.LittleEndian.Uint32(message[4:]), true
				mutex.Unlock()
			}
			if _, err := server.Write(message); err != nil {
				return
			}
		}
	}()
	defer server.Close()
	defer release(func(uint32) bool { return true })
	for {
		message, err := read(server)
		if err != nil {
			return
		}
		reply := binary.LittleEndian.Uint32(message[8:])
		release(func(id uint32) bool { return id == reply })
		client.Write(message) // a client that is gone does not end the change
	}
}

// read returns the next message: its length, its id, the id that it replies to, its kind, and its contents.
func read(from net.Conn) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(length[:])
	if size < 16 || size > 64<<20 {
		return nil, io.ErrUnexpectedEOF
	}
	message := make([]byte, size)
	copy(message, length[:])
	_, err := io.ReadFull(from, message[4:])
	return message, err
}

const (
	opMsg      = 2013
	moreToCome = 2
)

// changes reports whether a message is a command that changes documents and has a reply.
func changes(message []byte) bool {
	const name = 26 // after the header, the flags, the kind of the section, its length, and the type of its first value
	if len(message) < name || binary.LittleEndian.Uint32(message[12:]) != opMsg || message[16]&moreToCome != 0 {
		return false
	}
	command, _, _ := bytes.Cut(message[name:], []byte{0})
	switch string(command) {
	case "update", "delete", "findAndModify", "findandmodify":
		return true
	}
	return false
}
