import Type from 'typebox'
import { demand } from '../access/permissions.ts'
import { type Past, type PastPage, pastOf } from '../commands/audit/past.ts'
import type { ProjectDoc } from '../projections/projects.ts'
import { pageQuery } from './paging.ts'
import { type Ask, list, type Reply } from './route.ts'

/** The query parameter that asks for a past state. */
export const AsOf = {
  as_of: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'The state at this time, or at this position of the log, instead of the present one',
    }),
  ),
}
export const AsOfQuery = Type.Object(AsOf)
export const AsOfPageQuery = pageQuery(AsOf)

/** Whether a checked query asks for a past state, which takes `PAST_BYTES` of memory. */
export const asksForPast = (query: unknown): boolean =>
  typeof query === 'object' && query !== null && 'as_of' in query && query.as_of !== undefined

interface Page {
  readonly limit: number
  readonly offset: number
}

const newestFirst = <D extends { readonly order: string }>(docs: readonly D[]): D[] =>
  docs.toSorted((a, b) => (a.order < b.order ? 1 : -1))

/** Replies with one page of past documents, the newest first. */
export const listPast = async <D extends { readonly order: string }>(
  docs: readonly D[],
  page: Page,
  present: (doc: D) => unknown,
): Promise<Reply> => {
  const shown = newestFirst(docs).slice(page.offset, page.offset + page.limit)
  return listPastPage({ docs: shown, total: docs.length }, page, present)
}

/** The same for documents of one page. */
export const listPastPage = async <D extends { readonly order: string }>(
  { docs, total }: PastPage<D>,
  page: Page,
  present: (doc: D) => unknown,
): Promise<Reply> => list(await Promise.all(newestFirst(docs).map((doc) => present(doc))), total, page)

/**
 * The past and the project that the path named then. The credential needs the permission for that project too: the name
 * may have belonged to another one.
 */
export const pastProjectOf = async (
  { deps, credential, params }: Pick<Ask<{ project: string }>, 'deps' | 'credential' | 'params'>,
  as_of: string,
  type: string,
): Promise<{ readonly past: Past; readonly project: ProjectDoc }> => {
  const past = await pastOf(deps, as_of)
  const project = await past.project(credential.env_id, params.project)
  const paths = [project.project_id, project.name]
  demand(credential.permissions, { type, actions: ['read'], paths })
  return { past, project }
}
