import { docsTools } from './docsTools.ts'
import { eventTools } from './eventTools.ts'
import { projectTools } from './projectTools.ts'
import { runTools } from './runTools.ts'
import type { ApiTool } from './tool.ts'

/** The tools of every environment. Their names have fewer underscores than those of functions. */
export const apiTools: readonly ApiTool[] = [...runTools, ...eventTools, ...projectTools, ...docsTools]
