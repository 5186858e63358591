import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly name: string
  readonly cell: (row: Row) => ComponentChildren
  /** Numbers are aligned at their end. */
  readonly isNumber?: boolean
  /** Its texts are short, so they are never broken. */
  readonly isShort?: boolean
}

/** What a table shows. */
export interface TableProps<Row> {
  /** What the table lists, for screen readers. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly idOf: (row: Row) => string
  /** The rows are of another query, until those of this one arrive. */
  readonly isFormer?: boolean
  /** With both, rows can be selected. */
  readonly selected?: ReadonlySet<string>
  readonly onSelect?: (selected: ReadonlySet<string>) => void
}

const classOf = ({ isNumber, isShort }: Pick<Column<never>, 'isNumber' | 'isShort'>): string =>
  isNumber ? 'number' : isShort ? 'short' : ''

/** A table whose rows take the focus: `j`, `k`, Enter and `x` work on them. On a phone, each row is a card. */
export const Table = <Row,>(props: TableProps<Row>) => {
  const { caption, columns, rows, idOf, isFormer = false, selected, onSelect } = props
  const toggle = (id: string): void => {
    const next = new Set(selected)
    if (!next.delete(id)) next.add(id)
    onSelect?.(next)
  }
  const isAll = rows.length > 0 && rows.every((row) => selected?.has(idOf(row)))
  return (
    <div class="table" role="region" aria-label={caption} aria-busy={isFormer} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {onSelect && (
              <th scope="col">
                <input
                  type="checkbox"
                  aria-label="Select all on this page"
                  checked={isAll}
                  onChange={() => onSelect(new Set(isAll ? [] : rows.map(idOf)))}
                />
              </th>
            )}
            {columns.map((column) => (
              <th key={column.name} scope="col" class={classOf(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const id = idOf(row)
            return (
              <tr key={id} tabIndex={0} class={selected?.has(id) ? 'selected' : ''}>
                {onSelect && (
                  <td>
                    <input
                      type="checkbox"
                      aria-label="Select"
                      checked={selected?.has(id) ?? false}
                      onChange={() => toggle(id)}
                    />
                  </td>
                )}
                {columns.map((column) => (
                  <td key={column.name} data-name={column.name} class={classOf(column)}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}
