import { AppError } from '../../errors.ts'
import type { Directory } from '../../projections/directory.ts'

/** Refuses whatever would use an environment before an import into it is complete. Throws `unavailable`. */
export const demandImported = (directory: Pick<Directory, 'isImporting'>, env_id: string): void => {
  if (directory.isImporting(env_id))
    throw new AppError(
      'unavailable',
      'The environment is being imported; if no import is in progress, the operator repeats it with svc import',
    )
}
