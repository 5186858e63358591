import { PermanentError } from '../../errors.ts'
import type { Version } from '../../ports/readModels.ts'

/** The error for a read of a version that was dropped: the reader cannot know what is missing in it. */
export const droppedError = ({ name, version }: Version): PermanentError =>
  new PermanentError(
    'unavailable',
    `The read model ${name}@${version} was dropped, because no node seemed to read it; restart this node`,
  )
