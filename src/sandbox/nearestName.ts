/** Names that differ in more characters are different names; short ones in fewer. */
const MAX_EDITS = 2
const CHARACTERS_PER_EDIT = 3

const MAX_NAME = 256
const MAX_NAMES = 2000

/** The name with the fewest edits, or one that differs in its case only; undefined if none is near. */
export const nearest = (name: string, names: readonly string[]): string | undefined => {
  const most = Math.min(MAX_EDITS, Math.floor(name.length / CHARACTERS_PER_EDIT))
  let best: { readonly name: string; readonly edits: number } | undefined
  for (const each of names.slice(0, MAX_NAMES)) {
    if (each.length > MAX_NAME || Math.abs(each.length - name.length) > most) continue
    const edits = each.toLowerCase() === name.toLowerCase() ? 0 : editsBetween(name, each)
    if (edits <= most && (!best || edits < best.edits)) best = { name: each, edits }
  }
  return best?.name
}

/** Insertions, deletions, replacements and exchanges of neighbours that turn one text into the other. */
const editsBetween = (a: string, b: string): number => {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let edits = Math.min((row[j - 1] ?? 0) + 1, (last[j] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        edits = Math.min(edits, (beforeLast[j - 2] ?? 0) + 1)
      row.push(edits)
    }
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}
