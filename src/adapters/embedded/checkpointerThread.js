// Runs in a worker thread: moves WALs into their databases while the main thread continues to write.
// Plain JavaScript, because stripping types in one more thread costs 17 MB.
import { DatabaseSync } from 'node:sqlite'
import { parentPort } from 'node:worker_threads'

parentPort.on('message', (file) => {
  try {
    const db = new DatabaseSync(file)
    db.exec('PRAGMA synchronous=FULL; PRAGMA cache_size=-256; PRAGMA wal_checkpoint(PASSIVE)')
    db.close()
  } catch {
    // The disk is full or the file was removed: the WAL does not change, and the writer retries.
  }
  parentPort.postMessage(file)
})
