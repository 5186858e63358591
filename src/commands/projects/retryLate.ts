import { isLate } from '../../domain/project.ts'

/** Attempts of a change while other changes of the project take effect first; then the caller must retry. */
const MAX_RACES = 20

/** Repeats a change of a project on its new fence when another change of the project took effect first. */
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
