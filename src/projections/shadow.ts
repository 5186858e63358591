import type { Version } from '../ports/readModels.ts'

/** Follows the name of a read model in that of its new documents. */
const SUFFIX = '~new'

/** The collection in which the new documents of a read model are built. It remains after a crash, and is continued. */
export const shadowOf = <V extends Version>(version: V): V => ({
  ...version,
  name: `${version.name}${SUFFIX}`,
})

/** The read model to which new documents belong; the same version for all others. */
export const servedOf = ({ name, version }: Version): Version => ({
  name: name.endsWith(SUFFIX) ? name.slice(0, -SUFFIX.length) : name,
  version,
})
