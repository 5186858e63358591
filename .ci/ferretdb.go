// Command ferretdb serves MongoDB's wire protocol on SQLite: ferretdb ADDRESS DIRECTORY.
//
// FerretDB's own command panics at its start when it is built from the module proxy, which lacks the file with its
// version; its embeddable package does not need that file. Connections are accepted here, for two reasons:
//
//   - FerretDB reads a document and writes it in two steps, so one of two updates at once may be lost. MongoDB changes a
//     document atomically. One command that changes documents of a database runs at a time, therefore. Few commands read
//     at a time, so that it need not wait for one of FerretDB's hundred connections to SQLite.
//   - FerretDB's index of `_id` is not the expression by which it looks for one, so SQLite reads every document of the
//     collection. An index with that expression is added to each collection.
//
// It does not sync, because its data is thrown away.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
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
		SQLiteURL: "file:" + os.Args[2] + "/?_pragma=synchronous(off)",
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	indexes := &indexes{dir: os.Args[2], known: map[string]bool{}}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(client, socket, indexes)
		}
	}()
	if err := server.Run(ctx); err != nil {
		log.Print(err)
	}
	listener.Close()
}

// forward passes the messages between a client and the server until both have ended.
func forward(client net.Conn, socket string, indexes *indexes) {
	defer client.Close()
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer server.Close()
	sent := make(chan *command, 1024) // those whose reply has effects
	go func() {
		defer server.(*net.UnixConn).CloseWrite() // the server completes what it has begun
		defer close(sent)
		for {
			message, err := read(client)
			if err != nil {
				return
			}
			if command := commandOf(message); command != nil {
				command.begin()
				sent <- command
			}
			if _, err := server.Write(message); err != nil {
				return
			}
		}
	}()
	var awaited *command
	for {
		message, err := read(server)
		if err != nil {
			break
		}
		if awaited == nil {
			select {
			case awaited = <-sent:
			default:
			}
		}
		if awaited != nil && awaited.id == binary.LittleEndian.Uint32(message[8:]) {
			awaited.done(indexes)
			awaited = nil
		}
		client.Write(message) // a client that is gone does not end the change
	}
	if awaited != nil {
		awaited.done(indexes)
	}
	client.Close()
	for command := range sent {
		command.done(indexes)
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

// A command has an id, which its reply repeats.
type command struct {
	id                         uint32
	name, database, collection string
	room                       chan struct{}
}

const (
	opMsg      = 2013
	moreToCome = 2
)

// commandOf returns the command of a message that has a reply, or nil.
func commandOf(message []byte) *command {
	const name = 26 // after the header, the flags, the kind of the section, its length, and the type of its first value
	if len(message) < name || binary.LittleEndian.Uint32(message[12:]) != opMsg || message[16]&moreToCome != 0 {
		return nil
	}
	key, value, _ := bytes.Cut(message[name:], []byte{0})
	command := &command{id: binary.LittleEndian.Uint32(message[4:]), name: string(key)}
	if message[name-1] == 2 {
		command.collection = text(value)
	}
	if _, database, ok := bytes.Cut(message, []byte("\x02$db\x00")); ok {
		command.database = text(database)
	}
	return command
}

// text returns a string that follows its length and ends with a null.
func text(value []byte) string {
	if len(value) < 4 {
		return ""
	}
	text, _, _ := bytes.Cut(value[4:], []byte{0})
	return string(text)
}

// The commands that read at a time, and those that change documents, by database.
var (
	reading  = make(chan struct{}, 16)
	changing sync.Map
)

// begin waits until the command may run.
func (command *command) begin() {
	switch command.name {
	case "update", "delete", "findAndModify", "findandmodify":
		room, _ := changing.LoadOrStore(command.database, make(chan struct{}, 1))
		command.room = room.(chan struct{})
	case "find", "count", "aggregate", "distinct", "getMore":
		command.room = reading
	default:
		return
	}
	command.room <- struct{}{}
}

// done has the effects of the reply.
func (command *command) done(indexes *indexes) {
	if command.room != nil {
		<-command.room
	}
	switch command.name {
	case "create", "createIndexes", "insert", "update":
		if err := indexes.add(command.database, command.collection); err != nil {
			log.Printf("index of %s.%s: %v", command.database, command.collection, err)
		}
	case "drop", "dropDatabase", "renameCollection":
		indexes.forget()
	}
}

// The indexes of `_id` that were added to the collections of the databases in a directory.
type indexes struct {
	dir   string
	mutex sync.Mutex
	known map[string]bool
}

func (indexes *indexes) forget() {
	indexes.mutex.Lock()
	defer indexes.mutex.Unlock()
	clear(indexes.known)
}

func (indexes *indexes) add(database, collection string) error {
	indexes.mutex.Lock()
	defer indexes.mutex.Unlock()
	key := database + "." + collection
	if indexes.known[key] {
		return nil
	}
	path := filepath.Join(indexes.dir, database+".sqlite")
	db, err := sql.Open("sqlite", "file:"+path+"?mode=rw&_pragma=busy_timeout(10000)&_pragma=synchronous(off)")
	if err != nil {
		return err
	}
	defer db.Close()
	var table string
	row := db.QueryRow(`SELECT table_name FROM _ferretdb_collections WHERE name = ?`, collection)
	if err := row.Scan(&table); err == sql.ErrNoRows {
		return nil // the command has failed
	} else if err != nil {
		return err
	}
	const index = `CREATE INDEX IF NOT EXISTS %q ON %q (_ferretdb_sjson->'$._id')`
	if _, err := db.Exec(fmt.Sprintf(index, table+"_by_id", table)); err != nil {
		return err
	}
	indexes.known[key] = true
	return nil
}
