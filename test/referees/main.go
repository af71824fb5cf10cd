// Checks a log that the service served with third-party code of golang.org/x/mod: sumdb/note opens its checkpoints, sumdb/tlog
// checks every record, every older tree and a proof. Reads the served data as JSON from its standard input.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type served struct {
	Vkey        string
	Checkpoints []string // ordered from oldest to newest
	Records     [][]byte
	TlogProof   string
	ProvenIndex int64
}

type storage []tlog.Hash

func (s storage) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for at, index := range indexes {
		if index < 0 || index >= int64(len(s)) {
			return nil, fmt.Errorf("there is no hash %d", index)
		}
		hashes[at] = s[index]
	}
	return hashes, nil
}

func must(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

// treeOf opens a checkpoint and reads its size and root.
func treeOf(text string, keys note.Verifiers) tlog.Tree {
	opened, err := note.Open([]byte(text), keys)
	must(err, "sumdb/note does not open the checkpoint")
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 {
		must(fmt.Errorf("%d lines", len(lines)-1), "the checkpoint has not three lines")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	must(err, "the size")
	root, err := tlog.ParseHash(lines[2])
	must(err, "the root")
	return tlog.Tree{N: size, Hash: root}
}

// pathOf reads the hashes of a C2SP tlog-proof and the checkpoint behind them.
func pathOf(text string) (tlog.RecordProof, string) {
	head, checkpoint, _ := strings.Cut(text, "\n\n")
	var path tlog.RecordProof
	for _, line := range strings.Split(head, "\n")[2:] {
		bytes, err := base64.StdEncoding.Strict().DecodeString(line)
		must(err, "a hash of the proof")
		var hash tlog.Hash
		if copy(hash[:], bytes) != len(hash) || len(bytes) != len(hash) {
			must(fmt.Errorf("%d bytes", len(bytes)), "a hash of the proof")
		}
		path = append(path, hash)
	}
	return path, checkpoint
}

func main() {
	var log served
	must(json.NewDecoder(os.Stdin).Decode(&log), "the input")
	key, err := note.NewVerifier(log.Vkey)
	must(err, "the log's key")
	keys := note.VerifierList(key)

	var hashes storage
	for index, record := range log.Records {
		stored, err := tlog.StoredHashes(int64(index), record, hashes)
		must(err, "a record")
		hashes = append(hashes, stored...)
	}
	newest := treeOf(log.Checkpoints[len(log.Checkpoints)-1], keys)
	if newest.N != int64(len(log.Records)) {
		must(fmt.Errorf("%d, not %d", len(log.Records), newest.N), "the number of records")
	}
	for index, record := range log.Records {
		path, err := tlog.ProveRecord(newest.N, int64(index), hashes)
		must(err, "a record's path")
		must(tlog.CheckRecord(path, newest.N, newest.Hash, int64(index), tlog.RecordHash(record)), "a record")
	}
	for _, text := range log.Checkpoints {
		old := treeOf(text, keys)
		path, err := tlog.ProveTree(newest.N, old.N, hashes)
		must(err, "an older tree's path")
		must(tlog.CheckTree(path, newest.N, newest.Hash, old.N, old.Hash), "an older tree")
	}
	path, checkpoint := pathOf(log.TlogProof)
	tree := treeOf(checkpoint, keys)
	leaf := tlog.RecordHash(log.Records[log.ProvenIndex])
	must(tlog.CheckRecord(path, tree.N, tree.Hash, log.ProvenIndex, leaf), "the proof of the spin")
	fmt.Printf("%d records, %d checkpoints, 1 proof\n", len(log.Records), len(log.Checkpoints))
}
