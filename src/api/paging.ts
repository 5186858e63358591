import Type, { type TProperties } from 'typebox'

/** The query parameters of every list (SPEC.md, Pagination). */
export const Paging = {
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Maximum number of results' }),
  offset: Type.Integer({ minimum: 0, maximum: 1e9, default: 0, description: 'Number of results to skip' }),
}
/** Returns the query of a list that has filters of its own. */
export const pageQuery = <P extends TProperties>(more: P) => Type.Object({ ...Paging, ...more })
export const PageQuery = Type.Object(Paging)
