// Runs in a worker thread: folds the log into read models, each in a file of its own.
import { parentPort, workerData } from 'node:worker_threads'
import { isOfFullDisk } from '../../disk/fullDisk.ts'
import { messageOf } from '../../errors.ts'
import { slices } from '../../loops/slices.ts'
import { allProjections } from '../../projections/index.ts'
import { nameOf, type Projection } from '../../projections/projection.ts'
import { Projector } from '../../projections/projector.ts'
import { servedOf } from '../../projections/shadow.ts'
import { SharedReads } from '../../projections/sharedReads.ts'
import { skippedIn } from '../../projections/skippedFacts.ts'
import { openPresentLog, openSideFile } from '../engines.ts'
import type { FromThread, Member, ToThread } from './messages.ts'

/** No request waits for the event loop of this thread. Longer slices make larger commits. */
const SLICE_MS = 50
const REPORT_MS = 200
/** Its file commits less often than a batch ends, and the garbage collector copies the facts of a small batch less. */
const PAGES = 1

const { dataDir, members } = workerData as ToThread
const send = (message: FromThread): void => parentPort?.postMessage(message)

/** Also the projection of documents that are built beside the served ones. */
const projectionOf = (member: Member): Projection => {
  const served = nameOf(servedOf(member))
  const found = allProjections.find((projection) => nameOf(projection) === served)
  if (!found) throw new Error(`Expected a read model of this build, got ${served}`)
  return { ...found, name: member.name }
}

const fill = async (member: Member, reads: SharedReads, signal: AbortSignal): Promise<void> => {
  const projection = projectionOf(member)
  const name = nameOf(projection)
  const { readModels, complete } = await openSideFile(member.dir, member)
  const projector = new Projector(projection, { readModels, store: reads, lingerMs: () => 0, pages: PAGES })
  const reporting = setInterval(() => send({ name, position: projector.builtTo }), REPORT_MS)
  try {
    await projector.run(signal)
    if (signal.aborted) return
    const skipped = await skippedIn(readModels)
    await complete()
    send({ name, skipped })
  } finally {
    clearInterval(reporting)
    await readModels.close()
  }
}

const stop = new AbortController()
parentPort?.on('message', () => stop.abort())
slices.lengthen(SLICE_MS)
const log = await openPresentLog(dataDir, (unreadable) => send({ unreadable }))
const reads = new SharedReads(log)
await Promise.all(
  members.map((member) =>
    fill(member, reads, stop.signal).catch((error: unknown) =>
      send({ name: nameOf(member), failure: messageOf(error), isFull: isOfFullDisk(error) }),
    ),
  ),
)
log.close()
parentPort?.close()
