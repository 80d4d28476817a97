static int is_agent(int agent)
{
    return agent >= 0 && agent < PHALANX_AGENTS;
}

int phalanx_actions(int agent)
{
    return is_agent(agent) ? agents[agent].actions : -1;
}

int phalanx_members(int agent)
{
    return is_agent(agent) ? agents[agent].members : -1;
}

int phalanx_member(int agent, int place)
{
    if (!is_agent(agent) || place < 0 || place >= agents[agent].members)
        return -1;
    return members[agents[agent].first_member + place].agent;
}
