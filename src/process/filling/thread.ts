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
import type { AboutMember, FromThread, Member, Stop, ToThread } from './messages.ts'

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

const fill = async (member: Member, reads: SharedReads, signal: AbortSignal): Promise<AboutMember> => {
  const projection = projectionOf(member)
  const name = nameOf(projection)
  const { readModels, complete } = await openSideFile(member.dir, member)
  const projector = new Projector(projection, { readModels, store: reads, lingerMs: () => 0, pages: PAGES })
  const reporting = setInterval(() => send({ name, position: projector.builtTo }), REPORT_MS)
  try {
    await projector.run(signal)
    if (signal.aborted) return { name, stopped: true }
    const skipped = await skippedIn(readModels)
    await complete()
    return { name, skipped }
  } finally {
    clearInterval(reporting)
    await readModels.close()
  }
}

const stops = new Map(members.map((member) => [nameOf(member), new AbortController()]))
parentPort?.on('message', ({ stop }: Stop) => stops.get(stop)?.abort())
slices.lengthen(SLICE_MS)
const log = await openPresentLog(dataDir, (unreadable) => send({ unreadable }))
const reads = new SharedReads(log)
await Promise.all(
  members.map(async (member) => {
    const name = nameOf(member)
    const { signal } = stops.get(name) ?? new AbortController()
    const ended = await fill(member, reads, signal).catch((error: unknown) => ({
      name,
      failure: messageOf(error),
      isFull: isOfFullDisk(error),
    }))
    send(ended) // its file is closed
  }),
)
log.close()
parentPort?.close()
