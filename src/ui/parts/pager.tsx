import type { Page, Pagination } from '../../client/index.ts'
import { param, setQuery } from '../frame/router.ts'
import { Button } from './button.tsx'

/** The items on one page of a list. */
export const PAGE = 50

/** The first item of the page, from the URL. A page with several lists names the parameter of each. */
export const offsetOf = (name = 'offset'): number => Math.max(0, Number.parseInt(param(name), 10) || 0)

/** One page of a list that is loaded as a whole. */
export const pageOf = <Row,>(all: readonly Row[], offset: number): Page<Row> => ({
  data: all.slice(offset, offset + PAGE),
  pagination: { total: all.length, limit: PAGE, offset, has_more: all.length > offset + PAGE },
})

/** Links to the neighbouring pages; the URL has the offset. */
export const Pager = ({
  total,
  limit,
  offset,
  has_more,
  name = 'offset',
}: Pagination & { readonly name?: string }) => {
  if (total <= limit && offset === 0) return null
  const go = (to: number) => setQuery({ [name]: to > 0 ? String(to) : '' })
  return (
    <div class="pager" role="group" aria-label="Pages of the list">
      <Button isOff={offset === 0} onClick={() => go(offset - limit)}>
        Previous
      </Button>
      <span>
        {Math.min(offset + 1, total)}–{Math.min(offset + limit, total)} of {total.toLocaleString('en')}
      </span>
      <Button isOff={!has_more} onClick={() => go(offset + limit)}>
        Next
      </Button>
    </div>
  )
}
