import schedule from 'node-schedule'

/**
 * Alarms by key. Setting a key again moves its alarm; an instant in the past rings at once. After `close` no alarm is
 * set: otherwise late work would keep the process alive with its next alarm.
 */
export class Alarms {
  readonly #jobs = new Map<string, () => void>()
  #closed = false

  /** `at`: milliseconds since 1970. */
  set(key: string, at: number, ring: () => void): void {
    this.clear(key)
    if (this.#closed) return
    const fire = () => {
      this.#jobs.delete(key)
      ring()
    }
    const job = schedule.scheduleJob(new Date(at), fire)
    if (job) this.#jobs.set(key, () => job.cancel())
    else {
      const immediate = setImmediate(fire) // node-schedule refuses instants in the past
      this.#jobs.set(key, () => clearImmediate(immediate))
    }
  }

  clear(key: string): void {
    this.#jobs.get(key)?.()
    this.#jobs.delete(key)
  }

  get size(): number {
    return this.#jobs.size
  }

  close(): void {
    this.#closed = true
    for (const cancel of this.#jobs.values()) cancel()
    this.#jobs.clear()
  }
}
