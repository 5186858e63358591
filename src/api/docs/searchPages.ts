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

/** Words of the search that say nothing. */
const EMPTY_WORDS: ReadonlySet<string> = new Set(
  'a an and are can do does for how i in is it my of on or the to use what when with'.split(' '),
)

/** Finds the sections that contain most of the words, the best first. */
export const searchPages = (pages: readonly Page[], query: string, limit: number): Section[] => {
  const words = wordsOf(query)
  const wanted = [...new Set(words.filter((word) => !EMPTY_WORDS.has(word)))]
  if (wanted.length === 0) return []
  return pages
    .flatMap(sectionsOf)
    .map((section) => ({ section, score: scoreOf(section, wanted) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ section }) => ({ ...section, text: section.text.slice(0, MAX_TEXT) }))
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

/** The number of different words counts first. */
const scoreOf = ({ heading, title, text }: Section, wanted: readonly string[]): number => {
  const [top, body] = [wordsOf(`${title} ${heading}`), wordsOf(text)]
  let found = 0
  let score = 0
  for (const word of wanted) {
    const matches = (each: string): boolean => each === word || (word.length > 3 && each.startsWith(word))
    const inText = Math.min(body.filter(matches).length, MAX_REPEATED)
    const inHeading = top.some(matches) ? HEADING_WEIGHT : 0
    if (inText + inHeading > 0) found++
    score += inText + inHeading
  }
  return found * found * score
}
