import { messageOf } from '../../errors.ts'
import type { Printed } from '../command.ts'
import { type Instance, writeInstance } from '../instance.ts'
import { unannouncedText } from './texts.ts'

interface Given extends Omit<Instance, 'project'> {
  readonly folder: string
  /** The settings with which other commands reach the service where the folder cannot be written. */
  readonly variables: readonly string[]
  readonly print: (line: Printed) => Promise<void>
}

/** Announces the instance of a folder under the name of its project. A folder that cannot be written is reported once. */
export const openAnnouncement = ({ folder, variables, print, ...instance }: Given) => {
  let announced = ''
  let reported = ''
  return async (project: string): Promise<void> => {
    if (announced === project) return
    try {
      writeInstance(folder, { ...instance, project })
      announced = project
    } catch (error) {
      const reason = messageOf(error)
      if (reason !== reported) await print(unannouncedText(reason, variables))
      reported = reason
    }
  }
}
