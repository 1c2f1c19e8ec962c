// Package records moves records between JSON lines and the programs here: bytes in base64, what is missing as null.
package records

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Header is a [key, value] pair in JSON; a nil value is null.
type Header struct {
	Key   string
	Value []byte
}

// MarshalJSON writes the pair as an array of two.
func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal([2]any{h.Key, h.Value}) }

// UnmarshalJSON reads an array of two.
func (h *Header) UnmarshalJSON(data []byte) error {
	pair := [2]any{&h.Key, &h.Value}
	return json.Unmarshal(data, &pair)
}

// Record is one line.
type Record struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers"`
}

// Read takes all records from standard input.
func Read() ([]Record, error) {
	var all []Record
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var record Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return nil, err
		}
		all = append(all, record)
	}
	return all, lines.Err()
}

// Print writes one record to standard output.
func Print(record Record) error {
	if record.Headers == nil {
		record.Headers = []Header{}
	}
	line, err := json.Marshal(record)
	if err == nil {
		_, err = fmt.Println(string(line))
	}
	return err
}

// PrintOffsets writes the offset of each partition as one JSON object.
func PrintOffsets(offsets map[int32]int64) error {
	line, err := json.Marshal(offsets)
	if err == nil {
		_, err = fmt.Println(string(line))
	}
	return err
}

// Command is one thing a program does: its arguments follow the bootstrap address.
type Command func(bootstrap string, args []string) error

// Main runs the command named first on the command line; an error is one sentence and exit code 1.
func Main(commands map[string]Command) {
	err := errors.New("usage: PROGRAM COMMAND BOOTSTRAP [ARGUMENT …]")
	if len(os.Args) >= 3 && commands[os.Args[1]] != nil {
		err = commands[os.Args[1]](os.Args[2], os.Args[3:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Check returns an error with the sentence unless the condition holds.
func Check(holds bool, otherwise string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(otherwise, args...)
}

// Refused returns an error unless err is the one expected.
func Refused(err, expected error) error {
	return Check(errors.Is(err, expected), "%v was expected, not %v", expected, err)
}
