import type { HintTopic } from '../../ports/hints.ts'

/** The listeners of this process by topic. */
export class Listeners {
  readonly #listeners = new Map<HintTopic, Set<(text: string) => void>>()

  /** Calls the listeners of the topic after the caller has returned to the event loop. */
  notify(topic: HintTopic, text: string): void {
    for (const listener of this.#listeners.get(topic) ?? []) queueMicrotask(() => listener(text))
  }

  add(topic: HintTopic, listener: (text: string) => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set()
    this.#listeners.set(topic, listeners.add(listener))
    return () => listeners.delete(listener)
  }

  clear(): void {
    this.#listeners.clear()
  }
}
