// Builds the read model of runs on MongoDB from a present log. Ends itself with SIGKILL when it sends the given packet.
import { Socket } from 'node:net'
import { openMongoReadModels } from '../../src/adapters/mongodb/index.ts'
import type { Batch, EventStore } from '../../src/ports/eventStore.ts'
import { openPresentLog } from '../../src/process/engines.ts'
import { Projector } from '../../src/projections/projector.ts'
import { runs } from '../../src/projections/runs.ts'

/** Several batches of a projector. */
const FACTS_PER_PAGE = 5

const [, , dir = '', url = '', killedAt = ''] = process.argv
const log = await openPresentLog(dir, () => {})
const inPages: Pick<EventStore, 'subscribe'> = {
  async *subscribe(options): AsyncGenerator<Batch> {
    for await (const { events, ...end } of log.subscribe(options))
      for (let at = 0; at < events.length; at += FACTS_PER_PAGE) {
        const page = events.slice(at, at + FACTS_PER_PAGE)
        const isLast = at + FACTS_PER_PAGE >= events.length
        yield { events: page, ...(isLast ? end : { cursor: page.at(-1)?.cursor ?? '', caughtUp: false }) }
      }
  },
}
let left = Number(killedAt)
const { write } = Socket.prototype
Socket.prototype.write = function (this: Socket, ...args: Parameters<typeof write>) {
  if (--left === 0) process.kill(process.pid, 'SIGKILL')
  return write.apply(this, args)
} as typeof write
const readModels = await openMongoReadModels({ url })
await new Projector(runs, { readModels, store: inPages }).run(new AbortController().signal)
await readModels.close()
log.close()
