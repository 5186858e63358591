import type { AttackResult } from './attack.ts'

/** The document that contains the table. */
export const DOCUMENT = 'docs/security.md'

const BEGIN = '<!-- attacks: begin (npm run attacks -- --write) -->'
const END = '<!-- attacks: end -->'

type Row = Pick<AttackResult, 'id' | 'attempt' | 'severity' | 'tier' | 'outcome'>

const HEAD = ['| attack | attempt | severity | process tier | namespace tier |', '|---|---|---|---|---|']

/** One line of Markdown per attack, with its outcome in each tier, in the order of the ids. */
export const tableOf = (results: readonly Row[]): string => tableWith(linesOf(results))

const linesOf = (results: readonly Row[]): Map<string, string> =>
  new Map(
    [...Map.groupBy(results, ({ id }) => id)].flatMap(([id, [first, ...more]]): [string, string][] => {
      if (!first) return []
      const outcomes = new Map([first, ...more].map(({ tier, outcome }) => [tier, outcome]))
      const cells = [id, first.attempt, first.severity, outcomes.get('process'), outcomes.get('namespace')]
      return [[id, `| ${cells.map((cell) => cellOf(cell ?? 'not tried')).join(' | ')} |`]]
    }),
  )

const tableWith = (lines: ReadonlyMap<string, string>): string =>
  [...HEAD, ...[...lines].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, line]) => line)].join('\n')

/** The document with the results in its table. With `others`, it keeps the lines of other attacks. */
export const withResults = (document: string, results: readonly Row[], { others = false } = {}): string => {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`Expected ${DOCUMENT} to contain ${BEGIN} and ${END}`)
  const lines = new Map([...(others ? linesIn(document) : []), ...linesOf(results)])
  return `${document.slice(0, begin + BEGIN.length)}\n\n${tableWith(lines)}\n\n${document.slice(end)}`
}

const linesIn = (document: string): [id: string, line: string][] =>
  [
    ...document.slice(document.indexOf(BEGIN), document.indexOf(END)).matchAll(/^\| ([AB]\/\S+) +\|.*$/gm),
  ].map(([line, id = '']) => [id, line])

/** The attacks that the document names. */
export const idsIn = (document: string): string[] => linesIn(document).map(([id]) => id)

export const cellOf = (text: string): string =>
  text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').slice(0, 200)
