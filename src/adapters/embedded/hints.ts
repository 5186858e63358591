import type { Hints, HintTopic } from '../../ports/hints.ts'

/** Notices within this process; they reach no other node. */
export const openHints = (): Hints => new EmbeddedHints()

class EmbeddedHints implements Hints {
  readonly connected = false
  readonly #listeners = new Map<HintTopic, Set<(text: string) => void>>()

  publish(topic: HintTopic, text: string): void {
    for (const listener of this.#listeners.get(topic) ?? []) queueMicrotask(() => listener(text))
  }

  on(topic: HintTopic, listener: (text: string) => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set()
    this.#listeners.set(topic, listeners.add(listener))
    return () => listeners.delete(listener)
  }

  close(): Promise<void> {
    this.#listeners.clear()
    return Promise.resolve()
  }
}
