import { metadataOf } from '../../sdk/metadata.ts'
import { isFunction } from './functions.ts'

/** What other services call in the default export of a module. */
const HANDLERS: readonly string[] = ['fetch', 'scheduled', 'queue', 'email']

const MAX_UNUSED = 10

/**
 * The functions within exported objects that their author expects to be started: `default.fetch`, and those with metadata.
 * Other objects with functions are for other modules.
 */
export const unusedIn = (module: Readonly<Record<string, unknown>>): readonly string[] => {
  const found: string[] = []
  for (const [name, value] of Object.entries(module)) {
    if (typeof value !== 'object' || value === null) continue
    try {
      for (const [key, inner] of Object.entries(value).slice(0, 1000)) {
        const isHandler = name === 'default' && HANDLERS.includes(key)
        if (isFunction(inner) && (isHandler || metadataOf(inner) !== undefined)) found.push(`${name}.${key}`)
      }
    } catch {} // an object whose fields throw is no mistake of this kind
  }
  return found.slice(0, MAX_UNUSED)
}
