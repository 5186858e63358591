/** An unpacked build on the disk. */
interface Unpacked {
  /** Bytes that it needs on the disk. */
  bytes: number
  /** The organization that used it last; an empty string if it was not used since the start. */
  owner: string
  usedAt: number
}

/**
 * The unpacked builds of a node and their shares of its disk.
 * S1: while they exceed the limit, the organization with the most bytes loses its least recently used build. Therefore
 * no organization evicts builds of another that uses less than an equal share. S2: a build with children stays.
 */
export class CacheShares {
  readonly #maxBytes: number
  /** In the order of use: it decides between builds that were used in the same millisecond. */
  readonly #builds = new Map<string, Unpacked>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  has(hash: string): boolean {
    return this.#builds.has(hash)
  }

  get bytes(): number {
    let bytes = 0
    for (const build of this.#builds.values()) bytes += build.bytes
    return bytes
  }

  add(hash: string, build: Readonly<Unpacked>): void {
    this.#builds.delete(hash)
    this.#builds.set(hash, { ...build })
  }

  use(hash: string, owner: string, usedAt: number): void {
    const build = this.#builds.get(hash)
    if (build) this.add(hash, { ...build, owner, usedAt })
  }

  remove(hash: string): void {
    this.#builds.delete(hash)
  }

  /** The builds and the times of their last use, milliseconds since 1970. */
  *uses(): Generator<{ readonly hash: string; readonly usedAt: number }> {
    for (const [hash, { usedAt }] of this.#builds) yield { hash, usedAt }
  }

  /** Removes builds from the shares until the rest fits, and returns them. */
  surplus(isUsed: (hash: string) => boolean): string[] {
    const gone: string[] = []
    while (this.bytes > this.#maxBytes) {
      const hash = this.#worst(isUsed)
      if (hash === undefined) break
      this.#builds.delete(hash)
      gone.push(hash)
    }
    return gone
  }

  /** The least recently used build of the organization that uses most, among builds that may go (S1, S2). */
  #worst(isUsed: (hash: string) => boolean): string | undefined {
    const bytesOf = new Map<string, number>()
    for (const { owner, bytes } of this.#builds.values())
      bytesOf.set(owner, (bytesOf.get(owner) ?? 0) + bytes)
    let worst: { hash: string; share: number; usedAt: number } | undefined
    for (const [hash, { owner, usedAt }] of this.#builds) {
      const share = owner === '' ? Infinity : (bytesOf.get(owner) ?? 0)
      const isWorse = !worst || share > worst.share || (share === worst.share && usedAt < worst.usedAt)
      if (isWorse && !isUsed(hash)) worst = { hash, share, usedAt }
    }
    return worst?.hash
  }
}
