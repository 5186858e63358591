import { randomInt } from 'node:crypto'

/** A random odd number of 32 bits. */
const odd = (): number => randomInt(2 ** 31) * 2 + 1

/** Nobody knows them, so nobody can choose words whose edges all begin at one place of the table. */
const [FIRST, SECOND] = [odd(), odd()]

/**
 * A prefix tree of bytes, in which a text is searched for all of its words in one pass (Aho and Corasick). F1: a word is added
 * in the time of its own length. F2: a search takes at most two steps for each byte of the text, whatever the words are.
 * Node 0 is the root.
 */
export class PrefixTree {
  /** A hash table of the edges: the node below another one by a byte. */
  #keys = new Int32Array(1024).fill(-1)
  #nodes = new Int32Array(1024)
  #size = 0
  /** Of each node, by its number. */
  #parents = new Int32Array(512)
  #bytes = new Uint8Array(512)
  #depths = new Uint8Array(512)
  #isWord = new Uint8Array(512)
  /** The longest suffix of a node in the tree, and the longest suffix that is a word; known if its version is the current one. */
  #suffixes = new Int32Array(512)
  #words = new Int32Array(512)
  #versions = new Int32Array(512)
  #version = 1
  /** Whether a byte begins a word. */
  readonly #begins = new Uint8Array(256)

  /** Adds a word of at most 255 bytes. Returns its node. */
  add(word: Uint8Array): number {
    let node = 0
    for (const byte of word) node = this.below(node, byte) || this.#grow(node, byte)
    this.#isWord[node] = 1
    this.#version++
    return node
  }

  /** The node below another one; 0 if there is none. */
  below(node: number, byte: number): number {
    if (node === 0 && this.#begins[byte] === 0) return 0
    const key = (node << 8) | byte
    const at = this.#slotOf(key)
    return this.#keys[at] === key ? (this.#nodes[at] as number) : 0
  }

  /** The node of the longest suffix of a text in the tree, from that of the text before its last byte. */
  follow(node: number, byte: number): number {
    for (let from = node; ; from = this.#suffixOf(from)) {
      const to = this.below(from, byte)
      if (to !== 0 || from === 0) return to
    }
  }

  isWord(node: number): boolean {
    return this.#isWord[node] === 1
  }

  /** The longest word that is a suffix of a node; 0 if there is none. */
  wordAt(node: number): number {
    if (node === 0) return 0
    this.#suffixOf(node)
    return this.#words[node] as number
  }

  /** The length of the text of a node. */
  depthOf(node: number): number {
    return this.#depths[node] as number
  }

  #suffixOf(node: number): number {
    if (this.#versions[node] === this.#version) return this.#suffixes[node] as number
    const parent = this.#parents[node] as number
    const suffix = parent === 0 ? 0 : this.follow(this.#suffixOf(parent), this.#bytes[node] as number)
    this.#suffixes[node] = suffix
    this.#words[node] = this.#isWord[node] === 1 ? node : this.wordAt(suffix)
    this.#versions[node] = this.#version
    return suffix
  }

  #grow(parent: number, byte: number): number {
    if ((this.#size + 1) * 2 >= this.#keys.length) this.#double()
    const key = (parent << 8) | byte
    const at = this.#slotOf(key)
    const node = ++this.#size
    this.#keys[at] = key
    this.#nodes[at] = node
    this.#parents[node] = parent
    this.#bytes[node] = byte
    this.#depths[node] = (this.#depths[parent] as number) + 1
    if (parent === 0) this.#begins[byte] = 1
    return node
  }

  /** The table has twice as many slots as there are nodes. */
  #double(): void {
    const [keys, nodes] = [this.#keys, this.#nodes]
    this.#keys = new Int32Array(keys.length * 2).fill(-1)
    this.#nodes = new Int32Array(keys.length * 2)
    keys.forEach((key, at) => {
      if (key === -1) return
      const slot = this.#slotOf(key)
      this.#keys[slot] = key
      this.#nodes[slot] = nodes[at] as number
    })
    this.#parents = larger(this.#parents)
    this.#suffixes = larger(this.#suffixes)
    this.#words = larger(this.#words)
    this.#versions = larger(this.#versions)
    this.#bytes = larger(this.#bytes)
    this.#depths = larger(this.#depths)
    this.#isWord = larger(this.#isWord)
  }

  #slotOf(key: number): number {
    const mask = this.#keys.length - 1
    const first = Math.imul(key, FIRST)
    const second = Math.imul(first ^ (first >>> 15), SECOND)
    let at = (second ^ (second >>> 16)) & mask
    while (this.#keys[at] !== key && this.#keys[at] !== -1) at = (at + 1) & mask
    return at
  }
}

const larger = <Numbers extends Int32Array | Uint8Array>(numbers: Numbers): Numbers => {
  const copy = new (numbers.constructor as new (length: number) => Numbers)(numbers.length * 2)
  copy.set(numbers)
  return copy
}
