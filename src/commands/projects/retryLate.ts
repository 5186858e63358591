import { isLate } from '../../domain/project.ts'

/** Other changes of the same project that may take effect first, before the caller is asked to retry. */
const MAX_RACES = 20

/** Starts a change of a project again, on its new fence, when another change of the project came first. */
export const retryLate = async (change: () => Promise<unknown>): Promise<void> => {
  for (let races = 0; ; races++) {
    try {
      await change()
      return
    } catch (error) {
      if (!isLate(error) || races === MAX_RACES) throw error
    }
  }
}
