import { formsOf } from '../../src/sandbox/secretForms.ts'

/** Characters that no encoding in a URL changes, so that a value has few other forms. */
const CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.*'
const LENGTH = 32

/** The hash of an edge in the first versions of the prefix tree, which anybody could compute. */
const slotOf = (key: number, slots: number): number => (Math.imul(key, 0x9e3779b1) >>> 7) & (slots - 1)

/** The tree of the masks as an attacker imitates it: the nodes have the numbers that they have there. */
const imitated = () => {
  const nodes = new Map<number, number>()
  const below = (node: number, byte: number): number => {
    const key = (node << 8) | byte
    const known = nodes.get(key)
    if (known !== undefined) return known
    nodes.set(key, nodes.size + 1)
    return nodes.size
  }
  return { nodes, below }
}

const valuesFor = (count: number, slots: number): { readonly values: string[]; readonly size: number } => {
  const { nodes, below } = imitated()
  const lowest = (node: number): string => {
    let [best, least] = ['', Infinity]
    for (const character of CHARACTERS) {
      const slot = slotOf((node << 8) | character.charCodeAt(0), slots)
      if (slot < least) [best, least] = [character, slot]
    }
    return best
  }
  const values = Array.from({ length: count }, (_, n) => {
    const different = [n, Math.floor(n / CHARACTERS.length)].map((each) =>
      CHARACTERS.charAt(each % CHARACTERS.length),
    )
    let value = ''
    for (let node = 0; value.length < LENGTH; node = below(node, value.charCodeAt(value.length - 1)))
      value += different[value.length] ?? lowest(node)
    for (const form of formsOf(value)) {
      let node = 0
      for (const byte of Buffer.from(form).subarray(0, LENGTH)) node = below(node, byte)
    }
    return value
  })
  return { values, size: nodes.size }
}

/** Values of context variables whose edges shared one place of the hash table while its hash could be computed. */
export const collidingValues = (count: number): readonly string[] => {
  for (let slots = 1024; ; slots *= 2) {
    const { values, size } = valuesFor(count, slots)
    if ((size + 1) * 2 < slots) return values
  }
}

/** A text that leads along all of the values, and contains none of them. */
export const alongside = (values: readonly string[], length: number): string => {
  const all = values.map((value) => value.slice(0, -1)).join(' ')
  return all.repeat(Math.ceil(length / all.length)).slice(0, length)
}
