import type { ComponentChildren } from 'preact'
import type { Pagination } from '../../client/index.ts'
import type { Loaded } from '../frame/load.ts'
import { useReturn } from '../frame/repeat.ts'
import { setQuery } from '../frame/router.ts'
import { Pager } from './pager.tsx'
import { Table, type TableProps } from './table.tsx'
import { Shown } from './shown.tsx'
import { Empty } from './texts.tsx'

interface Listed<Row> {
  readonly data: readonly Row[]
  /** Missing if the list has one page only, or a pager of its own. */
  readonly pagination?: Pagination
}

interface Props<Row> extends Omit<TableProps<Row>, 'rows' | 'isFormer'> {
  readonly of: Pick<Loaded<Listed<Row>>, 'data' | 'isFormer' | 'error' | 'reload'>
  /** Shown instead of an empty table. */
  readonly empty: ComponentChildren
  /** The parameter of the URL with the offset. */
  readonly offset?: string
}

/**
 * A table of what was loaded, with its pages. Until the first reply it says that it loads, and a failure takes the place of
 * a table that was never loaded: an empty table would say that there is nothing.
 */
export const List = <Row,>({ of, empty, offset, ...table }: Props<Row>) => {
  useReturn(of.reload)
  return (
    <Shown of={of}>
      {({ data: rows, pagination }) => (
        <>
          {rows.length > 0 && <Table {...table} rows={rows} isFormer={of.isFormer} />}
          {rows.length === 0 &&
            (pagination && pagination.offset > 0 ? (
              <PastEnd name={offset} total={pagination.total} />
            ) : (
              empty
            ))}
          {rows.length > 0 && pagination && <Pager {...pagination} {...(offset && { name: offset })} />}
        </>
      )}
    </Shown>
  )
}

/** The page of a list whose last items were deleted, or an address with a wrong offset. */
const PastEnd = ({
  name = 'offset',
  total,
}: {
  readonly name?: string | undefined
  readonly total: number
}) => (
  <Empty>
    The list ends before this page: it has {total.toLocaleString('en')}.{' '}
    <button type="button" class="plain" onClick={() => setQuery({ [name]: '' })}>
      Show its beginning
    </button>
  </Empty>
)
