// Package embedded keeps pools in memory and makes them durable in one SQLite
// file: the store of a single machine.
//
// Every operation runs on pool.State under one lock. Operations that come while
// a commit is under way form the next batch; a batch is one SQLite transaction,
// and its answers go out only after that transaction stands. Each changed record
// is written once a batch. If a transaction fails, every answer of the batch is
// store.ErrUnavailable, and the state is rebuilt from the file before the next
// batch: memory never runs ahead of the file.
//
// The file is in WAL mode. With synchronous=NORMAL (the default) an acknowledged
// operation survives the death of the process; after a power cut the last ones
// may be missing. Options.Full fsyncs every batch.
//
// One daemon a file: a lock on a side file (hostler.db.lock) keeps others out.
// README.md in this folder has the tables, what they cost, and what was rejected.
package embedded
