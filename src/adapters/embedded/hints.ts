import type { Hints } from '../../ports/hints.ts'
import { Listeners } from '../shared/listeners.ts'

/** Hints within this process; they reach no other node. */
export const openHints = (): Hints => {
  const listeners = new Listeners()
  return {
    connected: false,
    publish: (topic, text) => listeners.notify(topic, text),
    on: (topic, listener) => listeners.add(topic, listener),
    close: () => Promise.resolve(listeners.clear()),
  }
}
