import type { ChildFrame } from './protocol.ts'

/** The share of `rssMb` above which a child is replaced. */
const RSS_SHARE = 0.8

/** The pongs over which the time of ended runs is averaged. */
const PONGS = 4

/** The share of the time, in thousandths, above which code of ended runs is more than the end of a callback. */
const LEFTOVER = 30

/** The pongs after which a child is ended in which such code continues, although it gets no more runs. */
const PATIENCE = 5

/** `draining`: the child gets no more runs. `ending`: it is ended, because code of ended runs continues in it. */
type Verdict = 'healthy' | 'draining' | 'ending'

/** Judges a child by its pongs: its memory, and the time that code and native work of ended runs take (decision 0063). */
export class Condition {
  readonly #rssBytes: number
  readonly #shares: number[] = []
  /** Pongs in a row above the share. */
  #exceeded = 0

  constructor({ rssMb }: { readonly rssMb: number }) {
    this.#rssBytes = rssMb * RSS_SHARE * 1024 * 1024
  }

  judge({ rss, leftover }: Pick<Extract<ChildFrame, { type: 'pong' }>, 'rss' | 'leftover'>): Verdict {
    this.#shares.push(leftover)
    if (this.#shares.length > PONGS) this.#shares.shift()
    const sum = this.#shares.reduce((total, share) => total + share, 0)
    this.#exceeded = sum >= LEFTOVER * PONGS ? this.#exceeded + 1 : 0
    if (this.#exceeded > PATIENCE) return 'ending'
    return this.#exceeded > 0 || rss > this.#rssBytes ? 'draining' : 'healthy'
  }
}
