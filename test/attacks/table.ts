import type { AttackResult } from './attack.ts'

/** The document that contains the table. */
export const DOCUMENT = 'docs/security.md'

const BEGIN = '<!-- attacks: begin (npm run attacks -- --write) -->'
const END = '<!-- attacks: end -->'

type Row = Pick<AttackResult, 'id' | 'attempt' | 'severity' | 'tier' | 'outcome'>

/** One line of Markdown per attack, with its outcome in each tier, in the order of the ids. */
export const tableOf = (results: readonly Row[]): string => {
  const attacks = [...Map.groupBy(results, ({ id }) => id)].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const lines = attacks.flatMap(([id, [first, ...more]]) => {
    if (!first) return []
    const outcomes = new Map([first, ...more].map(({ tier, outcome }) => [tier, outcome]))
    const cells = [id, first.attempt, first.severity, outcomes.get('process'), outcomes.get('namespace')]
    return `| ${cells.map((cell) => cellOf(cell ?? 'not tried')).join(' | ')} |`
  })
  return [
    '| attack | attempt | severity | process tier | namespace tier |',
    '|---|---|---|---|---|',
    ...lines,
  ].join('\n')
}

/** The document with another table between its marks. */
export const withTable = (document: string, table: string): string => {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`Expected ${DOCUMENT} to contain ${BEGIN} and ${END}`)
  return `${document.slice(0, begin + BEGIN.length)}\n\n${table}\n\n${document.slice(end)}`
}

/** The attacks that the document names. */
export const idsIn = (document: string): string[] =>
  [...document.slice(document.indexOf(BEGIN), document.indexOf(END)).matchAll(/^\| ([AB]\/\S+) \|/gm)].map(
    ([, id = '']) => id,
  )

export const cellOf = (text: string): string =>
  text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').slice(0, 200)
