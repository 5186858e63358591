import stringWidth from 'string-width'
import { onOneLine } from '../logger.ts'
import type { Colour, Paint } from './terminal.ts'

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string | number | boolean | null | undefined
  /** Numbers are aligned on the right. */
  readonly align?: 'right'
  /** Whether a narrow terminal may cut the text. Ids are never cut, because they are copied. */
  readonly cut?: true
  /** The colour of a cell on a terminal. */
  readonly colour?: (row: Row) => Colour | null
}

const GAP = '  '
/** A cut column keeps this many columns of the terminal. */
const LEAST = 12
const NONE = '-'

/** The text of a value: on one line, without characters that a terminal would obey. */
const cellOf = (value: ReturnType<Column<unknown>['of']>): string =>
  value === null || value === undefined || value === '' ? NONE : onOneLine(String(value))

/**
 * The rows under a line of titles. In a terminal that is too narrow, long texts are cut; if that does not suffice, each row
 * becomes a block of lines. Files and pipes get everything.
 */
export const tableOf = <Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number,
  paint: Paint = (_, text) => text,
): string => {
  const cells = rows.map((row) => columns.map((column) => cellOf(column.of(row))))
  const natural = columns.map(({ title }, index) =>
    cells.reduce((most, row) => Math.max(most, stringWidth(row[index] ?? '')), stringWidth(title)),
  )
  const widths = fitted(natural, columns, width - GAP.length * (columns.length - 1))
  if (widths === null) return blocksOf(cells, columns)
  const lineOf = (texts: readonly string[], row?: Row): string =>
    texts
      .map((text, index) => {
        const room = widths[index] ?? 0
        const cut = cutTo(text, room)
        const pad = ' '.repeat(Math.max(0, room - stringWidth(cut)))
        const colour = row === undefined ? null : columns[index]?.colour?.(row)
        const shown = colour ? paint(colour, cut) : cut
        return columns[index]?.align === 'right' ? pad + shown : shown + pad
      })
      .join(GAP)
      .trimEnd() + '\n'
  return lineOf(columns.map(({ title }) => title)) + cells.map((each, at) => lineOf(each, rows[at])).join('')
}

/** Takes room from the widest column that may be cut, until all fit; null if they cannot. */
const fitted = (
  natural: readonly number[],
  columns: readonly Column<never>[],
  room: number,
): readonly number[] | null => {
  const widths = [...natural]
  let excess = widths.reduce((sum, width) => sum + width, 0) - room
  while (excess > 0) {
    let widest = -1
    for (const [index, column] of columns.entries())
      if (column.cut && (widths[index] ?? 0) > Math.max(LEAST, widths[widest] ?? 0)) widest = index
    if (widest < 0) return null
    widths[widest] = (widths[widest] ?? 0) - 1
    excess--
  }
  return widths
}

const cutTo = (text: string, room: number): string => {
  if (stringWidth(text) <= room) return text
  let cut = ''
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (stringWidth(cut + segment) > room - 1) break
    cut += segment
  }
  return `${cut}…`
}

/** One line for each name and value, for a single thing. Values without a text are left out. */
export const fieldsOf = (fields: Readonly<Record<string, string | null | undefined>>): string => {
  const given = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined)
  const width = Math.max(...given.map(([name]) => name.length))
  return given.map(([name, value]) => `${name.padEnd(width)}${GAP}${onOneLine(value ?? NONE)}\n`).join('')
}

const blocksOf = (rows: readonly (readonly string[])[], columns: readonly Column<never>[]): string => {
  const width = Math.max(...columns.map(({ title }) => stringWidth(title)))
  return rows
    .map((row) =>
      columns
        .map(
          ({ title }, index) =>
            `${title}${' '.repeat(width - stringWidth(title))}${GAP}${row[index] ?? NONE}\n`,
        )
        .join(''),
    )
    .join('\n')
}
