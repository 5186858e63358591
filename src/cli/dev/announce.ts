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

export interface Announcement {
  /** Announces the instance under the name of its project. A folder that cannot be written is reported once. */
  readonly announce: (project: string) => Promise<void>
  /** Removes what this instance has announced. */
  readonly end: () => void
}

/** The announcement of the instance of a folder. */
export const openAnnouncement = ({ folder, variables, print, ...instance }: Given): Announcement => {
  let announced = ''
  let reported = ''
  let end = () => {}
  return {
    async announce(project) {
      if (announced === project) return
      try {
        end = writeInstance(folder, { ...instance, project })
        announced = project
      } catch (error) {
        const reason = messageOf(error)
        if (reason !== reported) await print(unannouncedText(reason, variables))
        reported = reason
      }
    },
    end: () => end(),
  }
}
