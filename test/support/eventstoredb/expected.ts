import type { Expected } from './verdict.ts'

/** The expected revision of a request. Each type of request has its own fields for it. */
interface Options {
  hasNoStream(): boolean
  hasStreamExists(): boolean
}

/** @param revision the revision in the request, or undefined. */
export const expectedOf = (options: Options | undefined, revision: string | undefined): Expected => {
  if (options?.hasNoStream()) return 'none'
  if (options?.hasStreamExists()) return 'exists'
  return revision === undefined ? 'any' : Number(revision)
}
