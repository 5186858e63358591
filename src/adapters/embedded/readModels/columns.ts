import type { Column } from '../../shared/columns.ts'

/**
 * Names the documents that agree in some fields: the same text for the same values, and only for them. Lengths
 * keep parts apart and a letter keeps types apart; JSON would say the same five times slower.
 */
export const facetOf = (group: string, columns: readonly Column[]): string => {
  let facet = group
  for (const column of columns) {
    if (typeof column === 'string') facet += `\ns${column.length}:${column}`
    else if (column === null) facet += '\n-'
    else facet += column instanceof Uint8Array ? `\nb${column[0]}` : `\nn${column}`
  }
  return facet
}

export const quoted = (identifier: string): string => `"${identifier.replaceAll('"', '""')}"`

/** Fields get a prefix, so that none meets a column of ours. */
export const columnName = (field: string): string => quoted(`f_${field}`)
