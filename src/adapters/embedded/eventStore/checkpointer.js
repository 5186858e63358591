// Runs in a worker thread: moves a database's WAL into the database while the main thread goes on
// appending. Plain JavaScript, because stripping types in one more thread costs 17 MB.
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

const db = new DatabaseSync(workerData)
db.exec('PRAGMA synchronous=FULL; PRAGMA cache_size=-256')
const checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)')

parentPort.on('message', (message) => {
  if (message === 'close') {
    db.close()
    parentPort.close()
    return
  }
  checkpoint.get()
  parentPort.postMessage('done')
})
