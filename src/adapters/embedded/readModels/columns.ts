export const quoted = (identifier: string): string => `"${identifier.replaceAll('"', '""')}"`

/** Fields get a prefix, so that none has the name of an internal column. */
export const columnName = (field: string): string => quoted(`f_${field}`)
