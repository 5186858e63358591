import { openEventStore } from '../../../src/adapters/embedded/eventStore/index.ts'
import { fact } from '../../contracts/eventStore/facts.ts'
import { acknowledge } from './acknowledge.ts'

/** Removes what has expired of `large` and `small`, and appends to `kept` until it is done. */
const [, , root = ''] = process.argv

const store = openEventStore({ dir: root })
let head = (await Array.fromAsync(store.read('kept'))).length - 1

const append = async (): Promise<void> => {
  const event = fact('env', 'meanwhile')
  await store.append('kept', [event], head++)
  acknowledge(`appended:${event.id}`)
}

await Promise.all(['large', 'small'].map((stream) => store.expire(stream, 0)))
acknowledge('expired')
let isDone = false
const scavenged = store.scavenge?.().finally(() => (isDone = true))
while (!isDone) await append()
await scavenged
acknowledge('scavenged')
await append()
await store.close()
