import type { Expected } from './verdict.ts'

/** Requests name the expected revision in fields of their own. */
interface Options {
  hasNoStream(): boolean
  hasStreamExists(): boolean
}

/** @param revision what the request names, undefined when it names none. */
export const expectedOf = (options: Options | undefined, revision: string | undefined): Expected => {
  if (options?.hasNoStream()) return 'none'
  if (options?.hasStreamExists()) return 'exists'
  return revision === undefined ? 'any' : Number(revision)
}
