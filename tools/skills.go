package tools

import "github.com/perstack-ai/perstack-base/tools/internal/skill"

// Skills is the engine behind the skill tools, for whoever makes an [Env].
type Skills = skill.Engine
