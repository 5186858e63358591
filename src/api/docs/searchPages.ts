import type { Page } from './pages.ts'

/** A part of a page below one heading. */
export interface Section {
  /** Below the address of the service, such as `/docs/functions.md`. */
  readonly path: string
  readonly title: string
  readonly heading: string
  readonly text: string
}

/** Characters of one section in a result. */
const MAX_TEXT = 2000
/** A word in a heading says more than one in a text. */
const HEADING_WEIGHT = 8
/** Further repetitions of a word say nothing. */
const MAX_REPEATED = 5

/** Beginnings of up to this many letters say nothing. */
const SHORTEST_BEGINNING = 3

/** Words of the search that say nothing. */
const EMPTY_WORDS: ReadonlySet<string> = new Set(
  'a an and are can do does for how i in is it my of on or the to use what when with'.split(' '),
)

/** Where a word is. */
interface Posting {
  readonly section: number
  readonly isInHeading: boolean
  /** Occurrences in the text. */
  readonly inText: number
}

interface Index {
  readonly sections: readonly Section[]
  /** All words in alphabetical order, so that those with one beginning are neighbours. */
  readonly words: readonly string[]
  readonly postings: ReadonlyMap<string, readonly Posting[]>
}

/** Reading all words takes milliseconds, in which the service does nothing else, so it is done once. */
const indexes = new WeakMap<readonly Page[], Index>()

/** Finds the sections that contain most of the words, the best first. */
export const searchPages = (pages: readonly Page[], query: string, limit: number): Section[] => {
  const wanted = [...new Set(wordsOf(query).filter((word) => !EMPTY_WORDS.has(word)))]
  const index = indexes.get(pages) ?? indexOf(pages)
  indexes.set(pages, index)
  return [...scoresOf(index, wanted)]
    .sort(([a, one], [b, other]) => other - one || a - b)
    .slice(0, limit)
    .flatMap(([at]) => index.sections[at] ?? [])
    .map((section) => ({ ...section, text: section.text.slice(0, MAX_TEXT) }))
}

const indexOf = (pages: readonly Page[]): Index => {
  const sections = pages.flatMap(sectionsOf)
  const postings = new Map<string, Posting[]>()
  for (const [section, { title, heading, text }] of sections.entries()) {
    const top = new Set(wordsOf(`${title} ${heading}`))
    const counts = new Map<string, number>()
    for (const word of top) counts.set(word, 0)
    for (const word of wordsOf(text)) counts.set(word, (counts.get(word) ?? 0) + 1)
    for (const [word, inText] of counts) {
      const posting = { section, isInHeading: top.has(word), inText }
      const known = postings.get(word)
      if (known) known.push(posting)
      else postings.set(word, [posting])
    }
  }
  return { sections, words: [...postings.keys()].sort(), postings }
}

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []

const sectionsOf = ({ path, title, text }: Page): Section[] => {
  const found: { heading: string; lines: string[] }[] = [{ heading: title, lines: [] }]
  let isCode = false
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    const [, heading] = (!isCode && /^#{1,3} (.+)$/.exec(line)) || []
    if (heading !== undefined) found.push({ heading, lines: [] })
    else found.at(-1)?.lines.push(line)
  }
  return found
    .map(({ heading, lines }) => ({ path: `/docs/${path}`, title, heading, text: lines.join('\n').trim() }))
    .filter((section) => section.text !== '')
}

/** The scores of the sections that contain a wanted word. The number of different words counts first. */
const scoresOf = (index: Index, wanted: readonly string[]): ReadonlyMap<number, number> => {
  const found = new Map<number, number>()
  const scores = new Map<number, number>()
  for (const word of wanted)
    for (const [section, { isInHeading, inText }] of matchesOf(index, word)) {
      const score = Math.min(inText, MAX_REPEATED) + (isInHeading ? HEADING_WEIGHT : 0)
      found.set(section, (found.get(section) ?? 0) + 1)
      scores.set(section, (scores.get(section) ?? 0) + score)
    }
  return new Map([...scores].map(([section, score]) => [section, (found.get(section) ?? 0) ** 2 * score]))
}

/** Where a word is; a longer one is also the beginning of others. */
const matchesOf = (
  { words, postings }: Index,
  wanted: string,
): ReadonlyMap<number, Omit<Posting, 'section'>> => {
  const matches = new Map<number, Omit<Posting, 'section'>>()
  for (let at = firstFrom(words, wanted); words[at]?.startsWith(wanted); at++) {
    const word = words[at] ?? ''
    if (word !== wanted && wanted.length <= SHORTEST_BEGINNING) break
    for (const { section, isInHeading, inText } of postings.get(word) ?? []) {
      const known = matches.get(section)
      matches.set(section, {
        isInHeading: isInHeading || (known?.isInHeading ?? false),
        inText: inText + (known?.inText ?? 0),
      })
    }
  }
  return matches
}

/** The index of the first text that is not before the wanted one. */
const firstFrom = (sorted: readonly string[], wanted: string): number => {
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((sorted[middle] ?? '') < wanted) from = middle + 1
    else to = middle
  }
  return from
}
