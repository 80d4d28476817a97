// A part of the graph, by way of the text of the whole: between here and `sub_world_end.cu` agents have
// their numbers in the whole graph.
#undef AGENTS
#define AGENTS WHOLE_AGENTS
#undef LOCAL
#define LOCAL(agent) ((long long)run->whole_places[agent])
#define world_start whole_start
#define world_step whole_step
#define world_reward whole_reward
