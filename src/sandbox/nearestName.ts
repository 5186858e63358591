/** Names that differ in more characters are different names; short ones in fewer. */
const MAX_EDITS = 2
const CHARACTERS_PER_EDIT = 3

const MAX_NAME = 256
const MAX_NAMES = 2000

/**
 * Characters that one search compares. Authors choose both the names and the one that does not exist, and a search blocks
 * whatever else the process does.
 */
const MAX_COMPARED = 10_000

/** The name with the fewest edits, or one that differs in its case only; undefined if none is near. */
export const nearest = (name: string, names: Iterable<string>): string | undefined => {
  const most = Math.min(MAX_EDITS, Math.floor(name.length / CHARACTERS_PER_EDIT))
  const wanted = name.toLowerCase()
  let best: { readonly name: string; readonly edits: number } | undefined
  let [seen, left] = [0, MAX_COMPARED]
  for (const each of names) {
    if (++seen > MAX_NAMES) break
    if (each.length > MAX_NAME || Math.abs(each.length - name.length) > most) continue
    left -= each.length
    if (left < 0) break
    const edits = each.toLowerCase() === wanted ? 0 : editsBetween(name, each, most)
    if (edits <= most && (!best || edits < best.edits)) best = { name: each, edits }
  }
  return best?.name
}

/**
 * Insertions, deletions, replacements and exchanges of neighbours that turn one text into the other; Infinity if there are more
 * than `most`. With so few, a character moves by no more than `most` places: each row has only the places around its own.
 */
const editsBetween = (a: string, b: string, most: number): number => {
  const places = 2 * most + 1
  const emptyRow = () => Array.from({ length: places + 2 }, () => Infinity) // with one at each end that nothing reaches
  let [beforeLast, last, row] = [emptyRow(), emptyRow(), emptyRow()]
  for (let j = 0; j <= Math.min(most, b.length); j++) last[j + most + 1] = j
  for (let i = 1; i <= a.length; i++) {
    let fewest = Infinity
    for (let place = 1; place <= places; place++) {
      const j = i + place - most - 1
      let edits = j === 0 ? i : Infinity
      if (j > 0 && j <= b.length) {
        const same = a[i - 1] === b[j - 1]
        const replaced = (last[place] ?? 0) + (same ? 0 : 1)
        edits = Math.min((row[place - 1] ?? 0) + 1, (last[place + 1] ?? 0) + 1, replaced)
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
          edits = Math.min(edits, (beforeLast[place] ?? 0) + 1)
      }
      row[place] = edits
      if (edits < fewest) fewest = edits
    }
    if (fewest > most) return Infinity
    ;[beforeLast, last, row] = [last, row, beforeLast]
  }
  return last[b.length - a.length + most + 1] ?? Infinity
}
