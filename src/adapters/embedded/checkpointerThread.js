// Runs in a worker thread: moves WALs into their databases, and syncs WALs, while the main thread continues to write.
// Plain JavaScript, because stripping types in one more thread costs 17 MB.
import { closeSync, fdatasyncSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort } from 'node:worker_threads'

const move = (file) => {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA synchronous=FULL; PRAGMA cache_size=-256; PRAGMA wal_checkpoint(PASSIVE)')
  db.close()
}

const sync = (file) => {
  const wal = openSync(`${file}-wal`, 'r')
  try {
    fdatasyncSync(wal)
  } finally {
    closeSync(wal)
  }
}

const quietly = (work, file) => {
  try {
    work(file)
  } catch {
    // The disk is full or the file was removed: the WAL does not change, and the writer retries.
  }
}

parentPort.on('message', ({ task, file }) => {
  quietly(task === 'sync' ? sync : move, file)
  if (task === 'move') parentPort.postMessage(file)
})
